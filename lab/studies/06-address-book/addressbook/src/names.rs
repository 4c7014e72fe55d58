//! What generated entries are made of. None of them exists: people, streets, cities and
//! firms are made up, numbers are of no country, and mailboxes are below `example.org`.

/// First names.
pub(crate) const FIRST: &str = "\
    Ada Åsa Bela Bruno Carla Cyril Dagny Dario Edith Elias Fanny Felix Greta Gustav Hanna Hugo \
    Ida Ivan Jana Jürgen Karin Kurt Lena Łukasz Mira Milan Nora Nils Olga Oscar Petra Piet Renée \
    Rolf Sofia Søren Tilda Tomas Vera Zoë";

/// Last names.
pub(crate) const LAST: &str = "\
    Alder Ashgrove Barrow Birchall Brook Calder Copper Dunmere Eddy Fallow Fenwater Ford Garnet \
    Glade Hazel Heron Holt Ingle Kestrel Lark Linden Lockwell Marsh Millward Nightjar O'Ferry \
    Osier Pike Quill Reed Rill Sedge Sluice Tarn Thorne Underhill Vale Weir Willow Yarrow";

/// A name as mailboxes have it.
pub(crate) fn mailbox(name: &str) -> String {
    const PLAIN: [(char, &str); 7] = [
        ('å', "a"),
        ('ü', "ue"),
        ('ł', "l"),
        ('é', "e"),
        ('ë', "e"),
        ('ø', "oe"),
        ('\'', ""),
    ];
    let name = name.to_lowercase();
    let letters = PLAIN.iter();
    letters.fold(name, |name, (letter, plain)| name.replace(*letter, plain))
}

/// Streets; a number comes before them.
pub(crate) const STREETS: [&str; 24] = [
    "Mill Lane",
    "Sluice Gate Road",
    "Bridge Street",
    "Wheelwright's Row",
    "Upper Pond Street",
    "Lower Pond Street",
    "Heron Close",
    "Willow Walk",
    "Ferry Quay",
    "Tanners' Yard",
    "Old Weir Road",
    "Station Road",
    "Market Square",
    "Cooper & Sons Court",
    "Orchard Terrace",
    "Saltmarsh Drive",
    "Lantern Hill",
    "Quarry Steps",
    "Chapel Green",
    "Granary Street",
    "Reed Cutters' Way",
    "Kingfisher Avenue",
    "Lock Keeper's Path",
    "Ropewalk",
];

/// Countries.
pub(crate) const COUNTRIES: [&str; 5] =
    ["Avaria", "Borrowmark", "Castelune", "Drenland", "Estavia"];

/// Cities, each with its postal code and the index of its country.
pub(crate) const CITIES: [(&str, &str, usize); 20] = [
    ("Weirford", "10432", 0),
    ("Millbridge", "10718", 0),
    ("Pondersby", "11250", 0),
    ("Heronsea", "12004", 0),
    ("Saltholm", "B-204", 1),
    ("Örebek", "B-311", 1),
    ("Kvarnby", "B-470", 1),
    ("Stillwater", "B-522", 1),
    ("Rivamonte", "3417 CL", 2),
    ("Port Lunel", "3420 CL", 2),
    ("Sant'Aria", "3455 CL", 2),
    ("Moulins", "3490 CL", 2),
    ("Drenstad", "D 7001", 3),
    ("Waterkerk", "D 7044", 3),
    ("Sluiswijk", "D 7120", 3),
    ("Molendam", "D 7388", 3),
    ("Estavar", "88-010", 4),
    ("Jezioro", "88-140", 4),
    ("Młyniec", "88-231", 4),
    ("Brodnica Dolna", "88-305", 4),
];

/// Organisations, each with the name of its mailboxes' domain.
pub(crate) const ORGANISATIONS: [(&str, &str); 16] = [
    ("Barrow & Holt Millwrights", "barrow-holt"),
    ("Office of Weights <and> Measures", "measures"),
    ("Ferry Company of Heronsea", "ferries"),
    ("Lantern Hill School", "lantern-school"),
    ("Sedge, Reed & Partners", "sedge-reed"),
    ("Upper Pond Bakery", "pond-bakery"),
    ("Kingfisher Print Works", "kingfisher"),
    ("City Hospital", "hospital"),
    ("The \"Old Weir\" Inn", "old-weir"),
    ("Ropewalk Instruments", "ropewalk"),
    ("Granary Theatre", "granary"),
    ("Saltholm Shipyard", "shipyard"),
    ("Public Library", "library"),
    ("Orchard Cooperative", "orchard"),
    ("Stillwater Observatory", "observatory"),
    ("Quarry Stone & Slate", "quarry"),
];

/// Jobs.
pub(crate) const TITLES: [&str; 14] = [
    "Millwright",
    "Teacher",
    "Bookkeeper",
    "Head of Research & Development",
    "Nurse",
    "Printer",
    "Conductor",
    "Engineer",
    "Cook",
    "Surveyor",
    "Librarian",
    "Shipwright",
    "Stagehand",
    "Astronomer",
];

/// Groups.
pub(crate) const GROUPS: [&str; 8] = [
    "Choir",
    "Friends & family",
    "Neighbours",
    "Rowing club",
    "Chess",
    "School",
    "Suppliers",
    "Winter cards",
];

/// Notes.
pub(crate) const NOTES: [&str; 8] = [
    "Calls back in the evening, never before seven.",
    "Prefers letters to mail; sends a card each winter.",
    "Has the key of the boathouse & the spare oars.",
    "Knows when the ferry runs on holidays.",
    "Met at the opening of the new lock.",
    "Lends books, keeps a list of who has < 3 of them.",
    "Bakes for the summer fair: ask in May.",
    "Moved twice last year; the address at work is safer.",
];
