with written as (
  insert into comment (article_id, who, body, at, imported)
  select a.id, i.who, i.body, i.at, true from in_comment i join ids a on a.article = i.article::integer
  order by a.article, i.n
  on conflict (article_id, who) where imported do update set body = excluded.body, at = excluded.at
  where comment.body <> excluded.body or comment.at <> excluded.at
  returning 1
)
select count(*) from written;

create temp table changed (topic_id bigint) on commit drop;

with written as (
  insert into thread (topic_id, title, opened_at)
  select t.id, i.title, i.at from in_thread i join in_topic k on k.slug = i.topic join topic t on t.slug = i.topic
  order by i.n
  on conflict (topic_id) do update set title = excluded.title, opened_at = excluded.opened_at
  where thread.title <> excluded.title or thread.opened_at <> excluded.opened_at
  returning topic_id
)
insert into changed select topic_id from written;

with written as (
  insert into post (thread_id, who, body, at, imported)
  select h.id, i.who, i.body, i.at, true
  from in_thread i join in_topic k on k.slug = i.topic join topic t on t.slug = i.topic join thread h on h.topic_id = t.id
  order by i.n
  on conflict (thread_id) where imported do update set who = excluded.who, body = excluded.body, at = excluded.at
  where post.who <> excluded.who or post.body <> excluded.body or post.at <> excluded.at
  returning thread_id
)
insert into changed select h.topic_id from written w join thread h on h.id = w.thread_id;

select count(distinct topic_id) from changed;
