-- param: done integer = 0

-- name: kept :one?
select entries, stored from sample where grain = 10 order by at desc limit 1;
