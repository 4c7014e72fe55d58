-- param: track integer[]

-- name: remove :exec
delete from basket_line where basket_id = :claims.basket and track_id in (:track);

-- redirect: /basket
