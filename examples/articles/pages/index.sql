-- name: newest :many
select id, title, summary, published_at, words from article order by published_at desc, id desc limit 19;

-- name: topics :many
select t.id, t.slug, t.name, count(*) as articles
from topic t join article_topic x on x.topic_id = t.id
group by t.id order by articles desc, t.name limit 24;

-- name: totals :one
select count(*) as articles, coalesce(sum(words), 0) as words from article;

-- name: talk :many
select t.id, t.title, count(*) - 1 as replies, max(p.at) as last_at
from thread t join post p on p.thread_id = t.id
group by t.id order by last_at desc, t.id limit 5;
