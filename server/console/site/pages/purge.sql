-- param: done integer = 0
-- param: ended integer = -1
-- param: wrong integer = 0
-- param: target text = ''
-- param: host text = ''

-- name: kept :one?
select entries, stored from sample where grain = 10 order by at desc limit 1;
