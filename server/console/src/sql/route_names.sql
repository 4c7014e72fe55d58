insert into route (name) select r.value ->> 'route' from json_each(:routes) r where true
on conflict (name) do nothing
