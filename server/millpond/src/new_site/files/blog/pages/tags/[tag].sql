-- name: tag :one
-- max-age: 60s
select distinct tag.value as name from published, json_each(published.tags) as tag where tag.value = :tag;

-- name: posts :many
-- max-age: 60s
select slug, title, date, summary, substr(body, 1, 2000) as start from published
where exists (select 1 from json_each(published.tags) as tag where tag.value = :tag)
order by date desc nulls last, slug limit 500;
