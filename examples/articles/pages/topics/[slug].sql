-- param: slug text
-- param: page integer = 1

-- name: topic :one
select id, slug, name, summary from topic where slug = :slug;

-- name: articles :many
select a.id, a.title, a.summary, a.published_at, a.words
from topic t join article_topic x on x.topic_id = t.id join article a on a.id = x.article_id
where t.slug = :slug
order by a.published_at desc, a.id desc limit 20
offset (case when cast(:page as bigint) < 1 then 1 when :page > 100000 then 100000 else :page end - 1) * 20;

-- name: paging :one
select case when cast(:page as bigint) < 1 then 1 when :page > 100000 then 100000 else :page end as page,
  (count(*) + 19) / 20 as pages, count(*) as total
from topic t join article_topic x on x.topic_id = t.id where t.slug = :slug;

-- name: thread :one?
select h.id, h.title from thread h join topic t on t.id = h.topic_id where t.slug = :slug;
