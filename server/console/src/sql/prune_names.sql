delete from route where id <> 0 and id not in (select route from route_sample)
