-- name: posts :many
-- max-age: 60s
select slug from published order by date desc nulls last, slug limit 49000;

-- name: pages :many
select slug from pages where draft is not true order by slug;
