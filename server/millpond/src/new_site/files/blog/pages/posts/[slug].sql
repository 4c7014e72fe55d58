-- name: post :one
-- max-age: 60s
select slug, title, date, summary, body from published where slug = :slug;

-- name: tags :many
select cast(tag.value as text) as name from posts, json_each(posts.tags) as tag where posts.slug = :slug order by name;

-- The posts beside it in the list. Those without a date have none.
-- name: newer :one?
-- max-age: 60s
select p.slug, p.title from published p, posts me
where me.slug = :slug and (p.date > me.date or p.date = me.date and p.slug < me.slug)
order by p.date, p.slug desc limit 1;

-- name: older :one?
-- max-age: 60s
select p.slug, p.title from published p, posts me
where me.slug = :slug and (p.date < me.date or p.date = me.date and p.slug > me.slug)
order by p.date desc, p.slug limit 1;
