-- param: title text
-- param: artist integer
-- param: genre integer
-- param: released date from 1900-01-01 to 2099-12-31
-- file: cover into uploads/covers max 5MB types (image/png, image/jpeg, image/webp) = null
-- require: claims.role = 'editor' else /login

-- name: album :one
insert into album (title, artist_id, genre_id, released, cover)
values (trim(:title), :artist, :genre, :released, :cover) returning id as album_id;

-- message: title check = "A title has 1 to 160 characters."
-- message: title unique = "This artist has an album of this title."
-- message: artist = "Choose an artist of the list."
-- message: form reference = "The artist or the genre is in the shop no more."
-- message: cover type = "A picture is PNG, JPEG or WebP."
-- message: cover size = "A picture has 5 MB at most."
-- message: released = "A date is year, month and day, such as 2024-08-15, from 1900 to 2099."
-- invalid: /editor/albums/new
-- redirect: /editor/albums/:album_id
