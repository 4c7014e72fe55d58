insert into alert (name, place) select r.value ->> 0, r.key from json_each(:rules) r where true
on conflict (name) do update set place = excluded.place where place <> excluded.place
