-- name: tag :one
select distinct tag.name from posts, jsonb_array_elements_text(posts.tags) as tag(name) where tag.name = :tag and posts.draft is not true;

-- name: posts :many
select slug, title, date, summary from posts
where draft is not true and posts.tags ? :tag
order by date desc nulls last, slug limit 500;
