-- name: post :one
select slug, title, date, summary, body from posts where slug = :slug and draft is not true;

-- name: tags :many
select tag.value as name from posts, json_each(posts.tags) as tag where posts.slug = :slug order by tag.value;
