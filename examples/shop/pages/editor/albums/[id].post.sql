-- param: id integer
-- param: title text
-- param: artist integer
-- param: genre integer
-- param: released text
-- param: drawn boolean = false
-- file: cover into uploads/covers max 5MB types (image/png, image/jpeg, image/webp) = null
-- require: claims.role = 'editor' else /login

-- The row is locked before its cover is looked at. The old file goes if it is replaced, or if the drawing is wanted again.
-- name: album :one
update album set title = trim(:title), artist_id = :artist, genre_id = :genre, released = :released where id = :id
returning case when :drawn or :cover_size > 0 then cover end as old_cover;

-- name: pictured :exec
update album set cover = coalesce(:cover, case when :drawn then null else cover end) where id = :id;

-- delete-file: :old_cover
-- redirect: /albums/:id
