-- name: menu :many
select folder, slug, title from listed where not is_internal order by slug <> 'README', title, slug;

-- name: menu_sections :many
select folder, title from sections where not is_internal order by id;
