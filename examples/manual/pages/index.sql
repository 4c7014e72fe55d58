-- name: sections :many
select folder, title, about from sections order by id;

-- name: docs :many
select folder, slug, title, substr(body, 1, 600) as beginning from docs order by title, slug;
