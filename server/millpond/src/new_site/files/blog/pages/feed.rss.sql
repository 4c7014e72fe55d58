-- name: posts :many
select slug, title, body, published_at from post where is_public order by published_at desc, id desc limit 20;
