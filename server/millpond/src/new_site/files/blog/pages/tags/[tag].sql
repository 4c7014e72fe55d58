-- name: tag :one
-- max-age: 60s
select distinct cast(tag.value as text) as name from published, json_each(published.tags) as tag where cast(tag.value as text) = :tag;

-- name: posts :many
-- max-age: 60s
select slug, title, date, summary, substr(body, 1, 2000) as start from published
where exists (select 1 from json_each(published.tags) as tag where cast(tag.value as text) = :tag)
order by date desc nulls last, slug limit 500;
