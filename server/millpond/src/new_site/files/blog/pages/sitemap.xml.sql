-- name: posts :many
select slug from post where is_public order by published_at desc, id desc limit 49000;
