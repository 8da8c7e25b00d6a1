"""Deploys the built stack, part by part, to an emulator of AWS, and replays the real games through its request path, stream and
queues. What its tables then hold is compared with a fold of the games that shares no code with the functions."""

import csv
import json
import sys
import time
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path

import aws
from emulated import http

GAMES = Path("tests/data/rated-games.csv")
CLIENTS = 4
TRIES_MAX = 5
QUIET_SECONDS_MAX = 900


def main(build: Path) -> None:
    with aws.emulator() as endpoint:
        for name, template in aws.parts(build):
            if aws.deploy(name, template, parameters(endpoint, name)):
                print(f"{name} deployed")
        games = real_games()
        replay(endpoint, games)
        wait_until_quiet(endpoint)
        compare(endpoint, games)


def parameters(endpoint: str, part: str) -> dict[str, str]:
    if part == "Tables":
        return {"DeletionProtection": "false"}
    if part == "Api":
        return {"JwtIssuer": "https://issuer.test"}
    if part == "OutboxRelay":
        return {"RecordsStreamArn": aws.outputs(endpoint, "Tables")["RecordsStreamArn"]}
    return {}


def real_games() -> list[dict]:
    with GAMES.open() as lines:
        games = list(csv.DictReader(lines))
    return sorted(games, key=lambda game: datetime.fromisoformat(game["ended_at"].replace("Z", "+00:00")))


def sides(game: dict) -> list[tuple[str, int]]:
    return [
        (game[side], int(game[f"{side}_rating_before"]) + int(game[f"{side}_diff"])) for side in ("white", "black")
    ]


def replay(endpoint: str, games: list[dict]) -> None:
    """Registers the players and posts the games, a player's games one after the other. The emulator's HTTP API answers 404
    on the routes of a template, so requests go to the function itself, in the form in which an HTTP API would send them."""
    began = time.monotonic()
    client = aws.client("lambda", endpoint)

    def request(method: str, path: str, body: dict) -> None:
        event = json.dumps(http({"method": method, "path": path, "body": body}))
        for _ in range(TRIES_MAX):
            answer = client.invoke(FunctionName=f"{aws.PREFIX}-api", Payload=event)
            payload = json.loads(answer["Payload"].read())
            if payload.get("statusCode") in (200, 201):
                return
            if payload.get("statusCode", 500) < 500:
                break
        sys.exit(f"{method} {path} {body} answers {payload}")

    def command(game: dict) -> dict:
        white, black = [{"player_id": player, "rating": rating} for player, rating in sides(game)]
        fields = {name: game[name] for name in ("game_id", "time_control", "ended_at", "result")}
        return {**fields, "white": white, "black": black}

    players = sorted({player for game in games for player, _ in sides(game)})
    with ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(lambda player: request("POST", "/players", {"player_id": player, "username": player}), players))
        for batch in independent(games):
            list(pool.map(lambda game: request("POST", "/games", command(game)), batch))
    print(f"{len(players)} players and {len(games)} games posted in {time.monotonic() - began:.0f} s")


def independent(games: list[dict]) -> list[list[dict]]:
    """Cuts games into runs in which no player occurs twice, so that each run can be posted at once."""
    runs: list[list[dict]] = [[]]
    taken: set[str] = set()
    for game in games:
        players = {player for player, _ in sides(game)}
        if taken & players:
            runs.append([])
            taken = set()
        runs[-1].append(game)
        taken |= players
    return runs


def wait_until_quiet(endpoint: str) -> None:
    """Waits until no queue holds a message and the tables no longer change."""
    sqs = aws.client("sqs", endpoint)
    names = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible", "ApproximateNumberOfMessagesDelayed")
    began = time.monotonic()

    def messages() -> dict[str, int]:
        counts = {}
        for url in sqs.list_queues(QueueNamePrefix=aws.PREFIX)["QueueUrls"]:
            attributes = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=list(names))["Attributes"]
            counts[url.rsplit("/", 1)[1]] = sum(int(attributes[name]) for name in names)
        return counts

    def quiet() -> bool:
        before = (messages(), checksum(endpoint))
        time.sleep(3)
        return not any(before[0].values()) and before == (messages(), checksum(endpoint))

    aws.wait_for(quiet, QUIET_SECONDS_MAX, f"not quiet after {QUIET_SECONDS_MAX} s")
    print(f"quiet {time.monotonic() - began:.0f} s later")


def checksum(endpoint: str) -> int:
    return hash(json.dumps(list(scan(endpoint, "views")), sort_keys=True))


def scan(endpoint: str, table: str):
    pages = aws.client("dynamodb", endpoint).get_paginator("scan").paginate(
        TableName=f"{aws.PREFIX}-{table}", ConsistentRead=True
    )
    for page in pages:
        yield from page["Items"]


def compare(endpoint: str, games: list[dict]) -> None:
    """Compares boards, histograms and statistics with a fold of the games."""
    boards: dict = {}
    results: Counter = Counter()
    played: Counter = Counter()
    won = {"1-0": ("wins", "losses"), "0-1": ("losses", "wins"), "1/2-1/2": ("draws", "draws")}
    for game in games:
        control, day = game["time_control"], game["ended_at"][:10]
        for (player, rating), result in zip(sides(game), won[game["result"]]):
            played[control, player] += 1
            boards[control, player] = (rating, played[control, player])
            results[player, f"TOTAL#{control}", result] += 1
            results[player, f"DAY#{day}#{control}", result] += 1
    cells = Counter((control, rating) for (control, _), (rating, _) in boards.items())

    found_boards, found_results, found_cells = {}, Counter(), Counter()
    for item in scan(endpoint, "views"):
        kind, *rest = item["pk"]["S"].split("#")
        if kind == "BOARD":
            found_boards[rest[0], rest[1]] = (int(item["rating"]["N"]), int(item["games"]["N"]))
        elif kind == "STATISTICS":
            for counter in ("wins", "draws", "losses"):
                if counter in item:
                    found_results[rest[0], item["sk"]["S"], counter] += int(item[counter]["N"])
        elif kind == "HISTOGRAM" and item["sk"]["S"].startswith("BLOCK#"):
            for name, value in item.items():
                if name.startswith("r") and name[1:].isdigit():
                    found_cells[rest[0], int(name[1:])] += int(value["N"])

    differences = defaultdict(list)
    for name, found, expected in (
        ("board row", found_boards, boards),
        ("counter", +found_results, +results),
        ("histogram cell", {key: count for key, count in found_cells.items() if count}, dict(cells)),
    ):
        for key in sorted(set(found) | set(expected)):
            if found.get(key) != expected.get(key):
                differences[name].append(f"{name} {key} is {found.get(key)} instead of {expected.get(key)}")
    compared = f"{len(boards)} board rows, {len(results)} counters, {len(cells)} histogram cells"
    if differences:
        lines = [line for lines in differences.values() for line in lines]
        sys.exit(f"compared {compared}: {len(lines)} differences\n" + "\n".join(lines[:20]))
    print(f"compared with a fold of the games: {compared}: no difference")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
