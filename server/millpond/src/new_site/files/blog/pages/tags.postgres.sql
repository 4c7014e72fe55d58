-- name: tags :many
-- max-age: 60s
select tag.name, count(*) as posts from published, jsonb_array_elements_text(published.tags) as tag(name)
group by tag.name order by lower(tag.name), tag.name;
