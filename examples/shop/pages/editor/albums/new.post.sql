-- param: title text
-- param: artist integer
-- param: genre integer
-- param: released text
-- file: cover into uploads/covers max 5MB types (image/png, image/jpeg, image/webp) = null
-- require: claims.role = 'editor' else /login

-- name: album :one
insert into album (title, artist_id, genre_id, released, cover)
values (trim(:title), :artist, :genre, :released, :cover) returning id as album_id;

-- redirect: /editor/albums/:album_id
