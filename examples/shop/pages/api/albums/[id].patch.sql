-- PATCH /api/albums/7: changes what is given, by an editor
-- require: claims.role = 'editor'
-- param: id integer
-- param: title text = null
-- param: artist_id integer = null
-- param: genre_id integer = null
-- param: released date from 1900-01-01 to 2099-12-31 = null

-- name: album :one
update album set title = coalesce(trim(:title), title), artist_id = coalesce(:artist_id, artist_id),
  genre_id = coalesce(:genre_id, genre_id), released = coalesce(:released, released)
where id = :id returning id, title, released, artist_id, genre_id;

-- json: album
