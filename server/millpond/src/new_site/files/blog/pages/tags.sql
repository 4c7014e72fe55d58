-- name: tags :many
-- max-age: 60s
select tag.value as name, count(*) as posts from published, json_each(published.tags) as tag
group by tag.value order by lower(tag.value), tag.value;
