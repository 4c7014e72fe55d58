-- name: menu :many
select slug, title from pages order by title, slug;
