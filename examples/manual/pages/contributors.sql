-- name: sections :many
select folder, title, about from sections
where exists (select 1 from listed where listed.folder = sections.folder and listed.is_internal)
order by id;

-- name: docs :many
select folder, slug, title, substr(body, 1, 600) as beginning from listed where is_internal order by slug <> 'README', title, slug;
