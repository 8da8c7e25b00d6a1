//! The ledger's contract, against DynamoDB and against its in-memory twin, and what consumers cost there.

mod cost;

use testkit::contract::{self, Subject};
use testkit::{Fault, MemoryLedger};
use tests::DynamoDb;

struct Memory(MemoryLedger);

impl Subject for Memory {
    type Ledger = MemoryLedger;

    fn ledger(&self) -> &MemoryLedger {
        &self.0
    }

    fn inject(&self, fault: Fault) {
        self.0.inject(fault);
    }
}

macro_rules! on_memory {
    ($($case:ident),* $(,)?) => {
        mod memory {
            $(
                #[tokio::test]
                async fn $case() {
                    super::contract::$case(&super::Memory(super::MemoryLedger::default())).await;
                }
            )*
        }
    };
}

macro_rules! on_dynamodb {
    ($($case:ident),* $(,)?) => {
        mod dynamodb {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $case() {
                    super::contract::$case(&super::DynamoDb::start().await).await;
                }
            )*
        }
    };
}

testkit::for_each_contract_case!(on_memory);
testkit::for_each_contract_case!(on_dynamodb);
