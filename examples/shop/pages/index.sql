-- name: lead :one?
select r.id as review_id, r.album_id as id, r.headline, r.author, a.title, a.cover, t.name as artist
from review r join album a on a.id = r.album_id join artist t on t.id = a.artist_id
order by r.at desc, r.id desc limit 1;

-- name: albums :many
select a.id, a.title, a.released, a.cover, r.name as artist
from album a join artist r on r.id = a.artist_id
order by a.released desc, a.id desc limit 12;

-- name: reviews :many
select r.id, r.album_id, r.headline, r.author, r.at, a.title
from review r join album a on a.id = r.album_id order by r.at desc, r.id desc limit 6;
