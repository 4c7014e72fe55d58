-- param: slug text
-- param: page integer = 1

-- name: author :one
select id, slug, name from author where slug = :slug;

-- name: articles :many
select a.id, a.title, a.summary, a.published_at, a.words
from author u join article_author x on x.author_id = u.id join article a on a.id = x.article_id
where u.slug = :slug
order by a.published_at desc, a.id desc limit 20
offset (case when cast(:page as bigint) < 1 then 1 when :page > 100000 then 100000 else :page end - 1) * 20;

-- name: paging :one
select case when cast(:page as bigint) < 1 then 1 when :page > 100000 then 100000 else :page end as page,
  (count(*) + 19) / 20 as pages, count(*) as total
from author u join article_author x on x.author_id = u.id where u.slug = :slug;
