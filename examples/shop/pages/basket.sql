-- The session says which basket is the visitor's.
-- name: tracks :many
select t.id, t.name, t.price_cents, t.album_id, a.title, r.name as artist
from basket_line l join track t on t.id = l.track_id join album a on a.id = t.album_id join artist r on r.id = a.artist_id
where l.basket_id = :claims.basket order by a.title, a.id, t.position;

-- name: total :one
select count(*) as tracks, coalesce(sum(t.price_cents), 0) as price_cents
from basket_line l join track t on t.id = l.track_id where l.basket_id = :claims.basket;

-- name: account :one?
select name from account where id = :claims.user;
