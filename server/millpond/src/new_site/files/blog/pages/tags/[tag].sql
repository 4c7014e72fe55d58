-- name: tag :one
select distinct tag.value as name from posts, json_each(posts.tags) as tag where tag.value = :tag and posts.draft is not true;

-- name: posts :many
select slug, title, date, summary from posts
where draft is not true and exists (select 1 from json_each(posts.tags) as tag where tag.value = :tag)
order by date desc nulls last, slug limit 500;
