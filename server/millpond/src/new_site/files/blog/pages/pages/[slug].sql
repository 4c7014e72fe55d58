-- name: page :one
select slug, title, body from pages where slug = :slug and draft is not true;
