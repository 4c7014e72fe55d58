-- name: menu :many
select folder, slug, title from docs order by folder, title, slug;

-- name: menu_sections :many
select folder, title from sections order by id;
