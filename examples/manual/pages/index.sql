-- name: sections :many
select folder, title, about from sections where not is_internal order by id;

-- name: docs :many
select folder, slug, title, substr(body, 1, 600) as beginning from listed where not is_internal order by slug <> 'README', title, slug;
