# A day of an online magazine as an access log: awk -v requests=590000 -f day.awk > day.log
#
# 1,440 minutes with the shape of the day that "Scaling Server Performance" shows: quiet at night, a first wave at 1:30, when another site has named an
# article, the peak from 9:30 to 10:00, and a slow decline. The busiest minute has 677 requests where the day has 590,000. Two of five
# requests are pages, nearly half of these the article that the other site named. The same log each time.

function wave(minute, centre, width, height) {
    return height * exp(-((minute - centre) / width) ^ 2 / 2)
}

# Lehmer: no two awks differ.
function random() {
    seed = (seed * 16807) % 2147483647
    return seed / 2147483647
}

function target(    x) {
    x = random()
    if (x < 0.315) {
        if (random() < 0.5) return "/read?id=50000500"
        return "/read?id=" (50000001 + int(random() * random() * 1000))
    }
    if (x < 0.42) return "/brief?id=50000500"
    if (x < 0.9) return "/parts/" int(random() * 8) ".svg"
    return x < 0.95 ? "/logo.svg" : "/style.css"
}

BEGIN {
    seed = 20021204
    for (m = 0; m < 1440; m++) {
        shape[m] = 300 + wave(m, 90, 12, 190) + wave(m, 140, 60, 120) + wave(m, 585, 16, 173) + wave(m, 690, 220, 165)
        shape[m] *= 0.96 + 0.08 * random()
        total += shape[m]
    }
    for (m = 0; m < 1440; m++) {
        due += shape[m] / total * requests
        for (n = made; n < int(due + 0.5); n++) {
            second = int((n - made) * 60 / (int(due + 0.5) - made))
            printf "127.0.0.1 - - [04/Dec/2002:%02d:%02d:%02d +0000] \"GET %s HTTP/1.1\" 200 1000\n", int(m / 60), m % 60, second, target()
        }
        made = int(due + 0.5)
    }
}
