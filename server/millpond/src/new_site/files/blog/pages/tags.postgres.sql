-- name: tags :many
select tag.name, count(*) as posts from posts, jsonb_array_elements_text(posts.tags) as tag(name)
where posts.draft is not true group by tag.name order by lower(tag.name), tag.name;
