-- What is to be there, with its place; then what is not as it is to be goes, and what is missing comes.
create temp table new_author on commit drop as
select a.id as article_id, u.id as author_id,
  row_number() over (partition by a.id order by i.n)::integer - 1 as position
from in_author i join ids a on a.article = i.article::integer join author u on u.slug = i.slug;

delete from article_author x using ids a
where x.article_id = a.id and not exists (
  select from new_author n
  where n.article_id = x.article_id and n.author_id = x.author_id and n.position = x.position
);

insert into article_author (article_id, author_id, position)
select article_id, author_id, position from new_author
on conflict (article_id, author_id) do nothing;

create temp table new_topic on commit drop as
select id as article_id, topic_id, row_number() over (partition by id order by n)::integer - 1 as position
from (
  select a.id, t.id as topic_id, min(i.n) as n
  from in_about i join ids a on a.article = i.article::integer join in_topic k on k.slug = i.topic
  join topic t on t.slug = i.topic
  group by a.id, t.id
) i;

delete from article_topic x using ids a
where x.article_id = a.id and not exists (
  select from new_topic n
  where n.article_id = x.article_id and n.topic_id = x.topic_id and n.position = x.position
);

insert into article_topic (article_id, topic_id, position)
select article_id, topic_id, position from new_topic
on conflict (article_id, topic_id) do nothing;

create temp table new_related on commit drop as
select id as article_id, other_id, kind, row_number() over (partition by id order by n)::integer - 1 as position
from (
  select distinct on (a.id, o.id) a.id, o.id as other_id, i.kind, i.n
  from in_related i join ids a on a.article = i.article::integer
  join in_article r on r.slug = i.slug join ids o on o.article = r.n
  where o.id <> a.id
  order by a.id, o.id, i.n
) i;

delete from related x using ids a
where x.article_id = a.id and not exists (
  select from new_related n
  where n.article_id = x.article_id and n.other_id = x.other_id and n.kind = x.kind and n.position = x.position
);

insert into related (article_id, other_id, kind, position, title, summary)
select n.article_id, n.other_id, n.kind, n.position, o.title, o.summary
from new_related n join article o on o.id = n.other_id
on conflict (article_id, other_id) do nothing;
