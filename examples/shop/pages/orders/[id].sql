-- param: id integer
-- param: thanks boolean = false
-- require: claims.user else /login

-- name: purchase :one
select id, country, note, placed_at from purchase where id = :id and account_id = :claims.user;

-- name: lines :many
select t.id, t.name, l.price_cents, t.album_id, a.title, r.name as artist
from purchase p join purchase_line l on l.purchase_id = p.id
join track t on t.id = l.track_id join album a on a.id = t.album_id join artist r on r.id = a.artist_id
where p.id = :id and p.account_id = :claims.user order by a.title, a.id, t.position;
