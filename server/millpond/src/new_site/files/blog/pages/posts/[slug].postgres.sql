-- name: post :one
select slug, title, date, summary, body from posts where slug = :slug and draft is not true;

-- name: tags :many
select tag.name from posts, jsonb_array_elements_text(posts.tags) as tag(name) where posts.slug = :slug order by tag.name;
