-- param: page integer = 1

-- name: total :one
select (count(*) + 9) / 10 as pages from post where is_public;

-- name: posts :many
select slug, title, summary, author, published_at from post
where is_public order by published_at desc, id desc limit 10 offset (:page - 1) * 10;
