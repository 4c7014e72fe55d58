-- name: tags :many
-- max-age: 60s
select cast(tag.value as text) as name, count(*) as posts from published, json_each(published.tags) as tag
group by name order by lower(name), name;
