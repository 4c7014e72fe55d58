-- name: tags :many
select tag.value as name, count(*) as posts from posts, json_each(posts.tags) as tag
where posts.draft is not true group by tag.value order by lower(tag.value), tag.value;
