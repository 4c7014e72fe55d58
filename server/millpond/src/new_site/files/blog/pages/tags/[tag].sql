-- param: page integer = 1

-- name: tag :one
select name from tag where name = :tag;

-- name: total :one
select (count(*) + 9) / 10 as pages
from tag t join post_tag x on x.tag_id = t.id join post p on p.id = x.post_id where t.name = :tag and p.is_public;

-- name: posts :many
select p.slug, p.title, p.summary, p.author, p.published_at
from tag t join post_tag x on x.tag_id = t.id join post p on p.id = x.post_id
where t.name = :tag and p.is_public order by p.published_at desc, p.id desc limit 10 offset (:page - 1) * 10;
