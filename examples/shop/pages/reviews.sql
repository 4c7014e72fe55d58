-- param: page integer from 1 = 1

-- name: total :one
select count(*) as reviews, (count(*) + 7) / 8 as pages from review
having (count(*) + 7) / 8 >= :page or :page = 1;

-- name: reviews :many
select v.id, v.album_id, v.headline, v.author, v.body, v.at, a.title, a.cover, r.name as artist
from review v join album a on a.id = v.album_id join artist r on r.id = a.artist_id
order by v.at desc, v.id desc limit 8 offset (:page - 1) * 8;
