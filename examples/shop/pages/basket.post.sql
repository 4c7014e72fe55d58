-- param: track integer[]

-- name: account :one?
select id as account_id, role from account where id = :claims.user;

-- The basket of this session; a visitor without one gets one.
-- name: made :one?
insert into basket (account_id) select cast(null as integer)
where not exists (select 1 from basket where id = :claims.basket) returning id as made_id;

-- name: basket :one
select id as basket_id from basket where id in (:made_id, :claims.basket);

-- What is in it already stays; a track that is gone is left out.
-- name: put :exec
insert into basket_line (basket_id, track_id)
select :basket_id, id from track where id in (:track)
on conflict do nothing;

-- claims: basket = basket.basket_id, user = account.account_id, role = account.role
-- redirect: /basket
