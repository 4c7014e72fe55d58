-- Ends the sessions of this account wherever they are: their claims have the number that it had.
-- require: claims.user else /login

-- name: account :exec
update account set session_epoch = session_epoch + 1
where id = :claims.user and session_epoch = :claims.epoch;

-- logout
-- redirect: /
