-- name: tag :one
-- max-age: 60s
select distinct tag.name from published, jsonb_array_elements_text(published.tags) as tag(name) where tag.name = :tag;

-- name: posts :many
-- max-age: 60s
select slug, title, date, summary, substr(body, 1, 2000) as start from published
where exists (select 1 from jsonb_array_elements_text(tags) as tag(name) where tag.name = :tag)
order by date desc nulls last, slug limit 500;
