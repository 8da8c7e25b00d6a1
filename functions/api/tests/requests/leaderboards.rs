//! `/leaderboards`, compared with a board that is computed from the list of players alone.

use axum::http::StatusCode;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::stage::{Fault, Stage};

/// Players by rating: ties within a block, ties at both sides of a block's border (64 ratings wide), empty blocks between,
/// both ends of the scale.
fn ratings() -> Vec<(String, u16)> {
    let groups =
        [(4_000, 2), (3_000, 1), (1_600, 3), (1_599, 4), (1_537, 1), (1_536, 6), (1_535, 5), (1_472, 2), (0, 3)];
    let mut players = Vec::new();
    for (rating, count) in groups {
        for _ in 0..count {
            // Ids in an order that has nothing to do with ratings.
            players.push((format!("p{:02}", (players.len() * 17) % 29), rating));
        }
    }
    // Pairs play one another, so there is an even number.
    players.push(("p99".to_owned(), 1_200));
    assert!(players.len() % 2 == 0);
    players
}

async fn stage(players: &[(String, u16)]) -> Stage {
    let stage = Stage::new().await;
    for (player_id, _) in players {
        stage.register(player_id).await;
    }
    for (number, pair) in players.chunks(2).enumerate() {
        stage.play(&format!("g-{number}"), (&pair[0].0, pair[0].1), (&pair[1].0, pair[1].1)).await;
    }
    stage
}

/// The board as it should be: by rating, then by player, both descending, ties with one rank.
fn expected(players: &[(String, u16)]) -> Vec<Value> {
    let mut sorted: Vec<(u16, &str)> =
        players.iter().map(|(player_id, rating)| (*rating, player_id.as_str())).collect();
    sorted.sort_unstable();
    sorted.reverse();
    let rank = |rating: u16| 1 + players.iter().filter(|(_, other)| *other > rating).count();
    let row = |(rating, player_id): &(u16, &str)| json!({"rank": rank(*rating), "player_id": player_id, "username": player_id, "rating": rating, "games": 1});
    sorted.iter().map(row).collect()
}

/// Reads all pages.
async fn pages(stage: &Stage, limit: usize, players: usize) -> Vec<Vec<Value>> {
    let mut pages = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = stage.get(&format!("/leaderboards/blitz?limit={limit}{cursor}")).await;
        assert_eq!(page.status, StatusCode::OK, "{page:?}");
        assert_eq!((&page.body["time_control"], &page.body["players"]), (&json!("blitz"), &json!(players)));
        pages.push(page.body["rows"].as_array().unwrap().clone());
        assert!(pages.len() <= players + 1, "the pages do not end");
        let Some(next) = page.body["next_cursor"].as_str() else {
            assert_eq!(page.body["next_cursor"], Value::Null);
            return pages;
        };
        cursor = format!("&cursor={next}");
    }
}

#[tokio::test]
async fn pages_go_to_the_very_end_with_shared_ranks() {
    let players = ratings();
    let stage = stage(&players).await;
    let expected = expected(&players);
    for limit in [1, 2, 7, 27, 28, 100] {
        let pages = pages(&stage, limit, players.len()).await;
        assert!(pages.iter().all(|page| !page.is_empty() && page.len() <= limit), "{limit}");
        assert_eq!(pages.len(), players.len().div_ceil(limit), "{limit}");
        assert_eq!(pages.concat(), expected, "{limit}");
    }
    let default = stage.get("/leaderboards/blitz").await;
    assert_eq!(default.body["rows"], json!(expected));
}

#[tokio::test]
async fn a_page_has_fifty_rows_unless_asked_otherwise() {
    let players: Vec<(String, u16)> = (0..52).map(|number| (format!("p{number:02}"), 1_000 + number)).collect();
    let stage = stage(&players).await;
    let page = stage.get("/leaderboards/blitz").await;
    assert_eq!(page.body["rows"].as_array().unwrap().len(), 50);
    let next = page.body["next_cursor"].as_str().unwrap();
    let rest = stage.get(&format!("/leaderboards/blitz?cursor={next}")).await;
    assert_eq!(rest.body["rows"].as_array().unwrap(), &expected(&players)[50..]);
    assert_eq!(rest.body["next_cursor"], Value::Null);
}

#[tokio::test]
async fn a_page_does_not_end_where_a_query_s_page_does() {
    let players = ratings();
    let stage = stage(&players).await;
    stage.fail("Query", vec![Fault::SmallPage; 100]);
    let page = stage.get("/leaderboards/blitz?limit=20").await;
    assert_eq!(page.body["rows"].as_array().unwrap(), &expected(&players)[..20]);
}

#[tokio::test]
async fn every_player_has_an_exact_place() {
    let players = ratings();
    let stage = stage(&players).await;
    let expected = expected(&players);
    for (index, row) in expected.iter().enumerate() {
        let player_id = row["player_id"].as_str().unwrap();
        let answer = stage.get(&format!("/leaderboards/blitz/players/{player_id}")).await;
        assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
        let own = row["rating"].as_u64().unwrap();
        let lower = players.iter().filter(|(_, rating)| u64::from(*rating) < own).count();
        let mut standing = row.clone();
        standing["time_control"] = json!("blitz");
        standing["players"] = json!(players.len());
        standing["percentile"] = json!((1_000.0 * lower as f64 / players.len() as f64).round() / 10.0);
        standing["above"] = json!(expected[index.saturating_sub(5)..index]);
        standing["below"] = json!(expected[index + 1..(index + 6).min(expected.len())]);
        assert_eq!(answer.body, standing, "{player_id}");
    }
}

#[tokio::test]
async fn a_place_takes_few_small_reads() {
    let players = ratings();
    let stage = stage(&players).await;
    stage.calls();
    // In the middle of a block: neighbours are all within it.
    stage.get("/leaderboards/blitz/players/p99").await;
    let calls = stage.calls();
    assert_eq!(calls["BatchGetItem"], 3, "row, block totals, blocks of the rows: {calls:?}");
}

#[tokio::test]
async fn a_cursor_holds_though_rows_move_between_pages() {
    let players = ratings();
    let stage = stage(&players).await;
    let first = stage.get("/leaderboards/blitz?limit=10").await;
    let rows = first.body["rows"].as_array().unwrap();
    let last = rows[9]["player_id"].as_str().unwrap();
    // The last row of the page goes to the top, a row from behind to the end.
    stage.play("g-move", (last, 3_900), ("p99", 1)).await;

    let next = first.body["next_cursor"].as_str().unwrap();
    let rest = stage.get(&format!("/leaderboards/blitz?limit=100&cursor={next}")).await;
    let ids = |rows: &Value| -> Vec<String> {
        rows.as_array().unwrap().iter().map(|row| row["player_id"].as_str().unwrap().to_owned()).collect()
    };
    let moved: Vec<(String, u16)> = players
        .iter()
        .map(|(player_id, rating)| {
            let moved = if player_id == last {
                3_900
            } else if player_id == "p99" {
                1
            } else {
                *rating
            };
            (player_id.clone(), moved)
        })
        .collect();
    let now = ids(&json!(expected(&moved)));
    // Who stood on the first page and moved above it is not repeated; all others follow in the order of now.
    let seen = ids(&first.body["rows"]);
    let unseen: Vec<String> = now.into_iter().filter(|player_id| !seen.contains(player_id)).collect();
    assert_eq!(ids(&rest.body["rows"]), unseen);
    assert_eq!(rest.body["next_cursor"], Value::Null);
}

#[tokio::test]
async fn an_empty_board_has_one_empty_page() {
    let stage = Stage::new().await;
    stage.register("ann").await;
    let page = stage.get("/leaderboards/correspondence").await;
    assert_eq!(page.status, StatusCode::OK);
    let empty = json!({"time_control": "correspondence", "players": 0, "rows": [], "next_cursor": null});
    assert_eq!(page.body, empty);
    let standing = stage.get("/leaderboards/correspondence/players/ann").await;
    assert_eq!((standing.status, standing.places()), (StatusCode::NOT_FOUND, vec![]));
}

#[tokio::test]
async fn boards_do_not_mix() {
    let stage = stage(&[("ann".to_owned(), 1_500), ("bea".to_owned(), 1_400)]).await;
    let page = stage.get("/leaderboards/rapid").await;
    assert_eq!((&page.body["players"], &page.body["rows"]), (&json!(0), &json!([])));
}

#[tokio::test]
async fn bad_parameters_are_named() {
    let stage = Stage::new().await;
    let genuine = URL_SAFE_NO_PAD.encode(r#"{"v":1,"t":"rapid","r":1500,"p":"ann"}"#);
    let foreign = format!("/leaderboards/blitz?cursor={genuine}");
    let cases = [
        ("/leaderboards/chess960", vec!["time_control"]),
        ("/leaderboards/chess960/players/ann", vec!["time_control"]),
        ("/leaderboards/blitz/players/a%23b", vec!["player_id"]),
        ("/leaderboards/blitz?limit=0", vec!["limit"]),
        ("/leaderboards/blitz?limit=101", vec!["limit"]),
        ("/leaderboards/blitz?limit=ten", vec!["limit"]),
        ("/leaderboards/blitz?limit=-1&cursor=x", vec!["limit", "cursor"]),
        ("/leaderboards/blitz?limit=", vec!["limit"]),
        ("/leaderboards/blitz?cursor=", vec!["cursor"]),
        ("/leaderboards/blitz?cursor=%00", vec!["cursor"]),
        (foreign.as_str(), vec!["cursor"]),
        ("/leaderboards/blitz?lmit=5", vec!["lmit"]),
        ("/leaderboards/blitz?limit=5&limit=6", vec!["limit"]),
    ];
    for (path, places) in cases {
        let answer = stage.get(path).await;
        assert_eq!(
            (answer.status, answer.places()),
            (StatusCode::BAD_REQUEST, places.iter().map(|p| (*p).to_owned()).collect()),
            "{path}"
        );
    }
    let genuine = stage.get(&format!("/leaderboards/rapid?cursor={genuine}")).await;
    assert_eq!(genuine.status, StatusCode::OK);
}
