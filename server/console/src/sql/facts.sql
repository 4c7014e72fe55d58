insert into fact (topic, place, name, unit, value)
select f.value ->> 0, f.key, f.value ->> 1, f.value ->> 2, f.value ->> 3
from json_each(:facts) f
where true
on conflict (topic, name) do update set
  place = excluded.place, unit = excluded.unit, value = excluded.value
where value is not excluded.value or place <> excluded.place
