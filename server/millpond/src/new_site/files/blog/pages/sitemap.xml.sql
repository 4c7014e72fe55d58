-- name: posts :many
select slug from posts where draft is not true order by date desc nulls last, slug limit 49000;

-- name: pages :many
select slug from pages order by slug;
