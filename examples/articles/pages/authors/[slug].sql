-- param: slug text
-- param: page integer = 1

-- name: author :one
select id, slug, name from author where slug = :slug;

-- name: articles :many
select a.id, a.title, a.summary, a.published_at, a.words
from author u join article_author x on x.author_id = u.id join article a on a.id = x.article_id
where u.slug = :slug
order by a.published_at desc, a.id desc limit 20 offset (max(1, min(:page, 100000)) - 1) * 20;

-- name: paging :one
select max(1, min(:page, 100000)) as page, (count(*) + 19) / 20 as pages, count(*) as total
from author u join article_author x on x.author_id = u.id where u.slug = :slug;
