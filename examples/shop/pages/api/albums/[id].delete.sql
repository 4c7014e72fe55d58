-- DELETE /api/albums/7: by an editor, if no track of it was sold (409); its picture goes too
-- require: claims.role = 'editor'
-- param: id integer

-- name: album :one
delete from album where id = :id returning id, title, cover;

-- delete-file: album.cover
-- json: album
