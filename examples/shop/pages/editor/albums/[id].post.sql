-- param: id integer
-- param: title text
-- param: artist integer
-- param: genre integer
-- param: released date from 1900-01-01 to 2099-12-31
-- param: drawn boolean = false
-- file: cover into uploads/covers max 5MB types (image/png, image/jpeg, image/webp) = null
-- require: claims.role = 'editor' else /login

-- The row is locked before its cover is looked at. The old file goes if it is replaced, or if the drawing is wanted again.
-- name: album :one
update album set title = trim(:title), artist_id = :artist, genre_id = :genre, released = :released where id = :id
returning case when :drawn or :cover_size > 0 then cover end as old_cover;

-- name: pictured :exec
update album set cover = coalesce(:cover, case when :drawn then null else cover end) where id = :id;

-- delete-file: album.old_cover
-- message: title check = "A title has 1 to 160 characters."
-- message: title unique = "This artist has an album of this title."
-- message: artist = "Choose an artist of the list."
-- message: form reference = "The artist or the genre is in the shop no more."
-- message: cover type = "A picture is PNG, JPEG or WebP."
-- message: cover size = "A picture has 5 MB at most."
-- message: released = "A date is year, month and day, such as 2024-08-15, from 1900 to 2099."
-- invalid: /editor/albums/:id
-- redirect: /albums/:id
